"""Words that say too little to be searched for, per language. All folded as `words.fold` folds."""

from __future__ import annotations

_ENGLISH = """
a about after all also am an and any are aren as at be because been before being between both but by
can cannot could couldn did didn do does doesn doing don done down during each else ever few for from
further get gets getting got had hadn has hasn have haven having he her here hers herself him himself
his how i if in into is isn it its itself just let like ll me might more most much must mustn my
myself no nor not now of off oh ok on once one only or other our ours ourselves out over own per
please re really s same shall shan she should shouldn so some such t than that the their theirs them
themselves then there these they this those through to too under until up us ve very was wasn we were
weren what when where whether which while who whom whose why will with won would wouldn yes yet you
your yours yourself
"""
_GERMAN = """
aber als am an auch auf aus bei bin bis bist da das dass dein deine dem den der des die dies diese
dieser dieses doch du durch ein eine einem einen einer eines er es euch fur hab habe haben hat hatte
hatten ich ihm ihn ihr ihre im in ist ja kann kein keine mal man mein meine mich mir mit nach nicht
noch nur ob oder sein seine sich sie sind so uber um und uns unser vom von war waren warum was wann
welche welcher welches wenn wer werden wie wir wird wo wurde zu zum zur
"""
_FRENCH = """
au aux avec ce ces cette dans de des du elle elles en est et etait etre eu il ils je la le les leur
lui ma mais mes moi mon nos notre nous ou par pas pour quand que quel quelle quelles quels qui quoi sa
ses son sont sur ta tes toi ton tu un une vos votre vous
"""
_SPANISH = """
al algo como con cual cuando cuanto de del donde el ella ellas ellos en era eran es esa ese eso esta
estaba este esto fue ha han hay la las lo los me mi mis muy nos nuestra nuestro o para pero por porque
que quien se ser si sin sobre son su sus te tiene tu tus un una uno unos y yo
"""

STOPWORDS = frozenset(f"{_ENGLISH} {_GERMAN} {_FRENCH} {_SPANISH}".split()) - {"die", "son"}
